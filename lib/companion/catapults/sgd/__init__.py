"""What the chapter *Catapults in SGD* needs and no other."""
