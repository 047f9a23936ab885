//! Percentiles and recorded baselines, shared by all benches.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

/// Returns the value below which the fraction `p` of all values lies; sorts the values.
pub(crate) fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * p).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Writes a baseline with the information that is needed to repeat it. The name is that of the bench; what follows a `-`
/// tells several baselines of one bench apart.
pub(crate) fn record(name: &str, results: Value) {
    let text_of = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let bench = name.split('-').next().unwrap_or(name);
    let kernel = text_of("uname", &["-r"]).unwrap_or_default();
    let date = text_of("date", &["+%F"]).unwrap_or_default();
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu =
        cpu_info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    // A bench may belong to a crate below the root.
    let room = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = room.ancestors().find(|it| it.join("benches/baselines").is_dir()).unwrap_or(&room);
    let folder = root.join(format!("benches/baselines/{date}-{cores}-cores"));
    let report = json!({
        "command": format!("cargo bench --bench {bench} -- {}", arguments.join(" ")),
        "commit": text_of("git", &["rev-parse", "--short", "HEAD"]),
        "cpu": cpu,
        "cores": cores,
        "kernel": kernel.split('.').take(2).collect::<Vec<_>>().join("."),
        "load_average": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        "results": results,
    });
    std::fs::create_dir_all(&folder).expect("the baselines can be written");
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, serde_json::to_string_pretty(&report).expect("plain data") + "\n")
        .expect("a baseline");
    println!("\nwritten to {}", path.display());
}
