//! The runtime on a scripted API server: the test answers each request.

mod records;
mod server;
mod shutdown;
mod watches;
