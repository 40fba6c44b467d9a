"""What the chapter *XOR: rank deficiency* needs and no other."""
