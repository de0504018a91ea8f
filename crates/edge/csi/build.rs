//! Generates the gRPC client and server from `proto/csi.proto`. No protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/csi.proto");
    let described = protox::compile(["csi.proto"], ["proto"])?;
    // Sorted maps make the encoding of a request deterministic.
    tonic_prost_build::configure().btree_map(".").compile_fds(described)?;
    Ok(())
}
