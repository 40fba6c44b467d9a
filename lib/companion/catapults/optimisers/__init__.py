"""What the chapter *Features across optimisers and deep networks* needs and no other."""
