"""What the chapter *Effective dynamics in the notes* needs and no other."""
