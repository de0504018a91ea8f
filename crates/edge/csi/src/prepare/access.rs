//! The CSI names of access modes.

use crate::proto::volume_capability::access_mode::Mode;

/// The CSI name of a claim's access mode. Drivers with SINGLE_NODE_MULTI_WRITER distinguish
/// ReadWriteOnce from ReadWriteOncePod.
pub(super) fn mode(mode: &str, single_node_multi_writer: bool) -> Result<String, String> {
    let mode = match (mode, single_node_multi_writer) {
        ("ReadWriteOnce", true) => Mode::SingleNodeMultiWriter,
        ("ReadWriteOncePod", true) => Mode::SingleNodeSingleWriter,
        ("ReadWriteOnce" | "ReadWriteOncePod", false) => Mode::SingleNodeWriter,
        ("ReadOnlyMany", _) => Mode::MultiNodeReaderOnly,
        ("ReadWriteMany", _) => Mode::MultiNodeMultiWriter,
        (other, _) => return Err(format!("unsupported AccessMode combination: [{other}]")),
    };
    Ok(mode.as_str_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_modes_map_to_csi_names() {
        for (name, plain, distinguished) in [
            ("ReadWriteOnce", "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"),
            ("ReadWriteOncePod", "SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"),
            ("ReadOnlyMany", "MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"),
            ("ReadWriteMany", "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"),
        ] {
            assert_eq!(mode(name, false).as_deref(), Ok(plain));
            assert_eq!(mode(name, true).as_deref(), Ok(distinguished));
        }
        assert_eq!(mode("ReadSometimes", true), Err("unsupported AccessMode combination: [ReadSometimes]".into()));
    }
}
