//! The syntax of names and labels (RFC 1123, as Kubernetes applies it).

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// Whether text is a DNS label, as names of namespaces are: lower-case letters, digits and inner
/// dashes.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_subdomain_part(text)
}

/// Whether text is a DNS subdomain, as most names are: such parts with dots between. A part may be
/// longer than a label.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_subdomain_part)
}

fn is_subdomain_part(part: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(is_end) && part.ends_with(is_end) && part.chars().all(|c| is_end(c) || c == '-')
}

/// Whether text is a label key: a name, with or without a DNS subdomain and a slash before it.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// Whether text is a non-empty label value, or the name of a label key.
pub fn is_label_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.len() <= LABEL_MAX && text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rfc_1123() {
        for valid in ["a", "a-b", "0a9"] {
            assert!(is_dns_label(valid) && is_dns_subdomain(valid) && is_label_key(valid), "{valid}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "ä"] {
            assert!(!is_dns_label(bad) && !is_dns_subdomain(bad), "{bad}");
        }
        assert!(!is_dns_label("a.b") && is_dns_subdomain("a.b") && !is_dns_subdomain("a..b"));
        let (label, long) = ("a".repeat(63), "a".repeat(64));
        assert!(is_dns_label(&label) && !is_dns_label(&long) && is_dns_subdomain(&long));
        assert!(!is_dns_subdomain(&"a".repeat(254)));
    }

    #[test]
    fn label_keys_may_have_a_domain() {
        for valid in ["zone", "topology.kubernetes.io/zone", "Zone_1.b", "example.com/A"] {
            assert!(is_label_key(valid), "{valid}");
        }
        for bad in ["", "/zone", "example.com/", "Example.com/a", "a_b/c", "_a", "a/b/c"] {
            assert!(!is_label_key(bad), "{bad}");
        }
    }
}
