//! The resources of a process, as the kernel tells them.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// Ticks of `/proc/PID/stat` in a second: 100 on every Linux since long ago, whichever the kernel's own.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident memory in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    status(pid, "VmRSS:")
}

/// The most resident memory since its start, in bytes.
pub(crate) fn resident_most(pid: u32) -> Result<u64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.context("/proc cannot be read: this is measured on Linux only")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Ok(kib.with_context(|| format!("no {field} in /proc"))? << 10)
}

/// Seconds of a processor that it has had.
pub(crate) fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat = stat.context("/proc cannot be read: this is measured on Linux only")?;
    // The program's name stands in parentheses and may have spaces; utime and stime are the 12th and
    // 13th after it.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let mut ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let (user, system) = (ticks.next().context("stat")??, ticks.next().context("stat")??);
    Ok((user + system) / TICKS_PER_SECOND)
}

/// The room that the files of a directory take of the disk, in bytes.
pub(crate) fn on_disk(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for file in fs::read_dir(dir)? {
        let file = file?;
        let about = file.metadata()?;
        bytes += if about.is_dir() { on_disk(&file.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}
