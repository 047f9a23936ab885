//! The work of the guard when the process that it guarded has ended.

use cluster::EndNotice;
use domain::cluster::record::ProcessId;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::time_limits::TELL_END_TIMEOUT;
use super::tls::install_tls;

/// Tells the other nodes that a process has ended, with all its programs: `message` is an [`EndNotice`], and `process` the
/// number of the process in the record of its node. Blocks; gives up after some seconds, and then the other nodes wait as
/// for a machine that was lost. For a process without a runtime.
pub fn tell_end(message: &[u8], process: u64) {
    let Some(notice) = EndNotice::from_bytes(message) else { return };
    install_tls();
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    // Both outcomes end the guard.
    let _ = runtime.block_on(async { timeout(TELL_END_TIMEOUT, notice.tell(ProcessId(process))).await });
    // A name that is being looked up must not delay the end.
    runtime.shutdown_background();
}
