"""What the chapter *Binary Gaussian mixture* needs and no other."""
