"""What the chapter *Beyond: chaos, momentum and scaling* needs and no other."""
