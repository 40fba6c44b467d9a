"""What the chapter *Many examples* needs and no other."""
