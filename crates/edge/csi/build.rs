//! Makes Rust of `proto/csi.proto`, client and server, with no compiler but Rust's own.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/csi.proto");
    let described = protox::compile(["csi.proto"], ["proto"])?;
    // Maps in order of their keys: the same request is the same bytes.
    tonic_prost_build::configure().btree_map(".").compile_fds(described)?;
    Ok(())
}
