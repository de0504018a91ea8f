//! `bindery controller`, from the outside: the binary on an API server, killed, doubled, cut off and lied to. What it promises is
//! checked on everything that the API server ever held, revision by revision. What needs neither etcd nor a server that remembers
//! runs on a real API server and on the embedded one.

/// A test of the same name on each API server, from a function of it.
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
