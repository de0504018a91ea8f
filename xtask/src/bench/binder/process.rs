//! What a process has used, as Linux tells.

/// What the kernel counts processor time in, on every Linux: hundredths of a second.
const TICKS_A_SECOND: f64 = 100.0;

/// Processor time of all its threads until now, in seconds; 0 if it is gone.
pub fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    ticks(&stat).unwrap_or_default() as f64 / TICKS_A_SECOND
}

/// User and system time. The name before them, in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Memory of a process, in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// What is resident now.
    pub now: f64,
    /// The most that ever was.
    pub peak: f64,
}

/// Its memory; nothing if it is gone.
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
    fn fields_are_found() {
        assert_eq!(ticks("7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0"), Some(300));
        assert_eq!(ticks("nonsense"), None);
        assert_eq!(mib("Name:\tx\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n", "VmRSS:"), 2.0);
        assert!(memory(std::process::id()).now > 0.0);
    }
}
