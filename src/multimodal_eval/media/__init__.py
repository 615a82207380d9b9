"""Images and audio. Only this package opens media files, within the limits of a policy."""
