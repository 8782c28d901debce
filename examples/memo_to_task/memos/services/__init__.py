"""What the tools and the command line may ask for; each call is one transaction."""
