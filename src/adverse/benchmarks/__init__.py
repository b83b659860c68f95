"""The numbers the literature uses: AP, mPC and rPC."""
