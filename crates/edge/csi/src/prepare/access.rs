//! Access modes, by the names that the interface has for them.

use crate::proto::volume_capability::access_mode::Mode;

/// What an access mode of a claim is called. A driver that tells pods apart has two words where others have one.
pub(super) fn mode(claims: &str, tells_pods_apart: bool) -> Result<String, String> {
    let mode = match (claims, tells_pods_apart) {
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
    fn modes_have_names() {
        for (claims, plain, apart) in [
            ("ReadWriteOnce", "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"),
            ("ReadWriteOncePod", "SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"),
            ("ReadOnlyMany", "MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"),
            ("ReadWriteMany", "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"),
        ] {
            assert_eq!(mode(claims, false).as_deref(), Ok(plain));
            assert_eq!(mode(claims, true).as_deref(), Ok(apart));
        }
        assert_eq!(mode("ReadSometimes", true), Err("unsupported AccessMode combination: [ReadSometimes]".into()));
    }
}
