"""What the chapter *Interpolation without harm* needs and no other."""
