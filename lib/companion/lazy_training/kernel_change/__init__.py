"""What the chapter *What the proof uses, and how far the kernel moves* needs and no other."""
