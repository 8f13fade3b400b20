"""What developers and a first trial need around the product: set-up, launcher, browser. Nothing in `app` imports it."""
