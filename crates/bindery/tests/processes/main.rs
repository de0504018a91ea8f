//! `bindery controller` as a process: killed, run twice, disconnected, and given wrong responses.
//! The promises are checked on every revision that the API server ever stored. Tests that do not
//! need etcd run on a real API server and on the embedded one.

/// Defines a test of the same name on each API server, from a function that takes the server.
macro_rules! on_each_server {
    ($test:ident) => {
        mod $test {
            use crate::servers::ApiServer;

            #[tokio::test(flavor = "multi_thread")]
            async fn on_a_real_api_server() {
                super::$test(ApiServer::Real).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_the_embedded_api_server() {
                super::$test(ApiServer::Embedded).await;
            }
        }
    };
}

mod cluster;
mod faults;
mod history;
mod kill;
mod leaders;
mod load;
mod promises;
mod proxy;
mod restart;
#[path = "../servers/mod.rs"]
mod servers;
