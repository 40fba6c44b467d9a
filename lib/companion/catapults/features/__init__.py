"""What the chapter *Feature learning* needs and no other."""
