"""What happens to disks, and to the files on them."""
