"""What the chapter *The threshold in the theorem's own generality* needs and no other."""
