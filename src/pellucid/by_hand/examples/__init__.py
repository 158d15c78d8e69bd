"""The worked examples, one file each, named as the user types them."""
