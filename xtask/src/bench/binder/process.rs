//! The resource usage of a process, from /proc.

/// Linux reports processor time in hundredths of a second.
const TICKS_A_SECOND: f64 = 100.0;

/// The processor time of all its threads in seconds; 0 if the process has ended.
pub fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    ticks(&stat).unwrap_or_default() as f64 / TICKS_A_SECOND
}

/// User and system time. The process name before them, in parentheses, may contain any character.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Memory of a process, in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// The current resident set.
    pub now: f64,
    /// The peak resident set.
    pub peak: f64,
}

/// Its memory; zero if the process has ended.
pub fn memory(pid: u32) -> Memory {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    Memory { now: mib(&status, "VmRSS:"), peak: mib(&status, "VmHWM:") }
}

fn mib(status: &str, field: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib: Option<f64> = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    kib.unwrap_or_default() / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed() {
        assert_eq!(ticks("7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0"), Some(300));
        assert_eq!(ticks("nonsense"), None);
        assert_eq!(mib("Name:\tx\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n", "VmRSS:"), 2.0);
        assert!(memory(std::process::id()).now > 0.0);
    }
}
