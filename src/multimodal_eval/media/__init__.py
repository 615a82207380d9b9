"""Images and audio: the only room that opens media, within the limits of a policy."""
