"""What the chapter *Random matrices* needs and no other."""
