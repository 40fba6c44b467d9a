"""What the chapter *Sample complexity and the information exponent* needs and no other."""
