"""What the chapter *Thresholds and success* needs and no other."""
