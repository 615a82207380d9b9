"""One package per contest: its files, its samples, its settings, its report sections. The run scores them."""
