//! The system's figures about this process. Elsewhere than on Linux: nothing.

use std::fs;

use super::text::Page;

/// The unit of `/proc/self/stat`'s times on every Linux: `USER_HZ`.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn write(page: &mut Page) {
    if let Some((resident, threads, seconds)) = of_stat() {
        page.gauge("process_resident_memory_bytes", "Memory in use.", resident);
        page.gauge("process_threads", "Threads.", threads);
        page.counter("process_cpu_seconds_total", "Time on processors.", seconds);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        page.gauge("process_open_fds", "Files and sockets that are open.", open.count());
    }
    if let Some(max) = max_fds() {
        page.gauge("process_max_fds", "How many there may be.", max);
    }
}

/// Bytes of memory in use.
pub(crate) fn resident() -> Option<u64> {
    of_stat().map(|(resident, ..)| resident)
}

/// Bytes of memory, threads, seconds of processor time.
fn of_stat() -> Option<(u64, u64, f64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may have anything in it: the state is the third field.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = |nth: usize| -> Option<f64> { fields.get(nth - 3)?.parse().ok() };
    let seconds = (ticks(14)? + ticks(15)?) / TICKS_PER_SECOND;
    Some((field("VmRSS:")? * 1_024, field("Threads:")?, seconds))
}

fn max_fds() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let (resident, threads, seconds) = of_stat().unwrap();
        assert!(resident > 100_000 && threads >= 1 && seconds >= 0.0);
        assert!(max_fds().is_none_or(|it| it > 2));
    }
}
