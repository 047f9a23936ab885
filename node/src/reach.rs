//! Whether another node can be reached, for `headwater cluster check`.

use std::sync::Arc;

use bytes::Bytes;
use cluster::NodeInfo;
use http::Request;
use http_body_util::Empty;

use super::client::NodeAddress;
use super::file::NodeFile;
use super::tls::first_client_config;

/// Connects to the port of a node with the certificate of this one, and waits for any answer. The caller limits the wait.
///
/// # Errors
/// The reason why there was none, as a clause.
pub async fn reach(file: &NodeFile, node: &NodeInfo) -> Result<(), String> {
    let address = NodeAddress::from_info(node).ok_or("it has no address")?;
    let config = first_client_config(file.certificates(), file.private_key()).map_err(|it| it.to_string())?;
    let mut connection = address.connect(Arc::new(config)).await.map_err(|it| it.to_string())?;
    let request = Request::get("/node/v1/").body(Empty::<Bytes>::new()).map_err(|it| it.to_string())?;
    // The other side checks the certificate of this one after the handshake, so only an answer proves that it accepts it.
    connection
        .sender
        .send_request(request)
        .await
        .map_err(|_| "it closes the connection; was this node removed?")?;
    Ok(())
}
