//! Commands of the operator that work whether the gateway runs or not.
//!
//! While it runs, it alone has the store open. It then takes the request of a command over a socket in the data folder,
//! which only its own user and root can open; otherwise the command opens the store itself.
//!
//! Reading order: `request.rs` (requests and their execution), `socket.rs`.

mod request;
mod socket;

use std::io::ErrorKind;

use anyhow::{Context, bail};
use config::DataFolder;
use services::open_store::open_store;

pub(crate) use self::request::{ControlReply, ControlRequest, UserSummary};
pub(crate) use self::socket::{ControlSocket, ControlledNode, execute_here};

/// Returns whether a gateway runs on this data folder. Blocks.
pub(crate) fn is_running(folder: &DataFolder) -> bool {
    socket::is_open(folder)
}

/// Runs a request in the gateway that uses this data folder, or directly on the store if none runs. Blocks.
///
/// # Errors
/// Returns an error if the request is refused, or if neither the gateway nor the store can be reached.
pub(crate) fn run(folder: &DataFolder, request: ControlRequest) -> anyhow::Result<ControlReply> {
    let path = folder.control_socket();
    match socket::ask(folder, &request) {
        Ok(reply) => reply.map_err(anyhow::Error::msg),
        // No gateway runs, or an earlier one was killed.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            if !request.may_create_store() && !folder.store().exists() {
                bail!("there is no store at {}", folder.store().display());
            }
            let store = open_store(folder)?;
            let reply = request::execute(folder, &store, None, request)?;
            store.close();
            Ok(reply)
        }
        Err(error) => Err(error).with_context(|| {
            format!(
                "failed to reach the running gateway through {}; run this as its user or as root",
                path.display()
            )
        }),
    }
}
