"""What the chapter *Transformers as particles* needs and no other."""
