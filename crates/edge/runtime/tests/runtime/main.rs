//! The runtime on a scripted API server: the test answers each request.

mod server;
mod shutdown;
mod watches;
