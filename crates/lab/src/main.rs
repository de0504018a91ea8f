//! `bindery-lab`: a real API server by hand, until this program ends.

use std::process::ExitCode;

use bindery_lab::Lab;

fn main() -> ExitCode {
    let lab = match Lab::start() {
        Ok(lab) => lab,
        Err(error) => {
            eprintln!("bindery-lab: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("export KUBECONFIG={}", lab.kubeconfig().display());
    println!("# {}, processes {:?}; it ends with this program (Ctrl-C)", lab.server_url(), lab.pids());
    loop {
        std::thread::park();
    }
}
