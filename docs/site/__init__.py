"""What builds the site: the guide to every command, pictures, notebooks, and the checks of what pages show."""
