"""The documentation site: pages whose examples are executed, and the site that is built from them."""
