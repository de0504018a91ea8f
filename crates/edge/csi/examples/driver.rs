//! A CSI driver that stores nothing, to try `bindery provisioner csi` by hand. Class parameters
//! script its answers (see [`bindery_csi::fake`]). It prints every call.
//!
//! ```console
//! $ cargo run -p bindery-csi --features fake --example driver -- /tmp/csi.sock csi.example.com
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bindery_csi::fake::FakeDriver;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, name] = arguments.as_slice() else {
        eprintln!("usage: driver SOCKET NAME");
        return ExitCode::from(2);
    };
    let driver = Arc::new(FakeDriver::new(name));
    let _serving = match driver.serve(Path::new(socket)) {
        Ok(serving) => serving,
        Err(error) => {
            eprintln!("{socket}: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{name} serves on {socket}");
    let mut printed = 0;
    loop {
        let calls = driver.calls();
        calls[printed..].iter().for_each(|call| println!("{call}"));
        printed = calls.len();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
