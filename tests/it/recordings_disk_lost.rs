//! The disk of the recordings is taken away while they are written, and comes back.

use serde_json::json;

use crate::recordings::{Studio, StudioStart, check_packets, check_with_ffprobe};
use crate::support::small_disk::SmallDisk;
use crate::support::until_async;

const NOT_MOUNTED: &str = "is its disk mounted?";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_that_run_leave_a_disk_that_is_lost_and_continue_when_it_is_back() {
    let disk = SmallDisk::new(256);
    let point = disk.attached();
    let start = StudioStart { folder: Some(point.path().to_owned()), ..Default::default() };
    let studio = Studio::start_on(start).await;
    let old = studio.recorded().await;
    let (running, ended) = (studio.record().await, studio.record().await);
    for id in [running, ended] {
        studio.until_size(id, 400_000).await;
    }
    let is_bare = || std::fs::read_dir(point.path()).unwrap().count() == 0;

    point.detach();
    assert!(is_bare());
    studio.until_problem("recordings_unmounted").await;
    for id in [running, ended] {
        until_async("the gap with its reason", async || {
            let gap = studio.get(id).await["gaps"][0].clone();
            gap["end"].is_null() && gap["reason"].as_str().is_some_and(|it| it.contains(NOT_MOUNTED))
        })
        .await;
        assert_eq!(studio.get(id).await["status"], "recording");
    }
    let late = studio.record().await;
    until_async("the reason", async || {
        studio.get(late).await["reason"].as_str().is_some_and(|it| it.contains(NOT_MOUNTED))
    })
    .await;
    studio.stop(ended).await;
    until_async("the end", async || !studio.get(ended).await["ended_at"].is_null()).await;
    assert_eq!(studio.get(ended).await["status"], "stopped");
    assert_eq!(studio.get(old).await["status"], "stopped", "its record stays");
    assert!(is_bare(), "nothing is written where the disk was");

    point.attach();
    for id in [running, late] {
        studio.until_size(id, studio.get(id).await["file_size"].as_u64().unwrap_or(0) + 400_000).await;
    }
    until_async("the end of the problem", async || {
        !studio.problems().await.contains(&"recordings_unmounted".to_owned())
    })
    .await;
    for id in [running, late] {
        studio.stop(id).await;
    }
    for id in [old, running, ended, late] {
        let bytes = studio.finished(id).await;
        check_packets(&bytes);
        assert!(check_with_ffprobe(&bytes).await > 1.0);
        let recording = studio.get(id).await;
        assert_eq!(recording["file_size"], bytes.len(), "{recording}");
        let n_gaps = recording["gaps"].as_array().unwrap().len();
        // The disk may be back before the late one lacks anything.
        assert!(if id == late { n_gaps <= 1 } else { n_gaps == usize::from(id != old) }, "{recording}");
    }
    assert_eq!(studio.files().len(), 4, "{:?}", studio.files());
    let next = studio.recorded().await;
    assert_eq!(studio.get(next).await["gaps"], json!([]));
}
