"""What the chapter *Implicit bias* needs and no other."""
