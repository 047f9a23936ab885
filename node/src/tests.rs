//! Nodes that connect to each other over real sockets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use domain::cluster::certificate::{NodeCertificate, node_of};
use domain::cluster::record::NodeId;
use domain::cluster::token::{JoinToken, NodeRole, TOKEN_MS, TokenRefusal};
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use storage::Store;
use storage::log::{Append, CommitLog, LogKeys, LogRead, LogUnreachable};

use super::authority::{Authority, JOIN_NAME, NodeSecrets, add_first_node, read_authority, revoke};
use super::file::{NodeFile, begin_cluster};
use super::join::{
    JoinAnswer, JoinRequest, REQUEST_BYTES_MAX, admit, create_token, rotate_keys, stored_keys,
};
use super::tls::{
    JOIN_PROTOCOL, NODE_PROTOCOL, NodeIdentity, NodeTls, TrustedNodes, client_config, join_client_config,
};
use super::{NodeError, node_name, revoked_serials};

const NOW: i64 = 1_700_000_000_000;
/// Longest wait of a socket: far more than it takes.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The answer of a server.
const SECRET: &[u8] = b"the ring of a channel";

/// A log in memory.
#[derive(Default)]
pub(super) struct VecLog {
    pub(super) entries: Mutex<Vec<Vec<u8>>>,
}

impl CommitLog for VecLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        let mut entries = self.entries.lock();
        if entries.len() as u64 != expected_last {
            return Append::Conflict;
        }
        entries.push(entry.to_owned());
        Append::Appended
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        let at = usize::try_from(sequence).ok().and_then(|it| it.checked_sub(1));
        let Some(at) = at else { return Ok(LogRead::Removed) };
        Ok(self.entries.lock().get(at).map_or(LogRead::End, |it| LogRead::Entry(it.clone())))
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        Ok(self.entries.lock().len() as u64)
    }
}

/// The first node of a cluster.
struct FirstNode {
    store: Store,
    keys: LogKeys,
    secrets: NodeSecrets,
    certificate: CertificateDer<'static>,
}

impl FirstNode {
    fn new() -> Self {
        let store = Store::temporary(storage::records::schema()).unwrap();
        let secrets = NodeSecrets::new().unwrap();
        let (node, certificate, _) = add_first_node(&store, &secrets, NOW).unwrap();
        assert_eq!(node, NodeId(1));
        Self { store, keys: LogKeys::new().unwrap(), secrets, certificate }
    }

    fn identity(&self) -> NodeIdentity {
        self.identity_of(&self.secrets, self.certificate.clone())
    }

    /// Returns the identity of a node, with the present list of revoked certificates.
    fn identity_of(&self, secrets: &NodeSecrets, certificate: CertificateDer<'static>) -> NodeIdentity {
        let authority = read_authority(&self.store).unwrap();
        let revoked = revoked_serials(&self.certificates());
        NodeIdentity {
            certificates: [certificate, authority.certificate().clone()],
            key: secrets.private_key(),
            trusted: TrustedNodes::Except(authority.revocation_list(&revoked).unwrap()),
        }
    }

    fn certificates(&self) -> Vec<NodeCertificate> {
        self.store.collection::<NodeCertificate>().all().unwrap()
    }

    fn join(&self, token: &JoinToken, now: i64) -> (NodeSecrets, Result<JoinAnswer, NodeError>) {
        let secrets = NodeSecrets::new().unwrap();
        let answer = admit(&self.store, &self.keys, &JoinRequest::new(token, &secrets), now);
        (secrets, answer)
    }
}

/// Serves one connection: a known node gets the secret, a joining one is only greeted. Returns the node, or the error.
fn serve(
    identity: &NodeIdentity,
    known: Vec<NodeCertificate>,
) -> (SocketAddr, JoinHandle<Result<NodeId, String>>) {
    let tls = NodeTls::new(identity).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut acceptor = Acceptor::default();
        let accepted = loop {
            if acceptor.read_tls(&mut socket).map_err(|it| text(&it))? == 0 {
                return Err("the client left".to_owned());
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err((error, _)) => return Err(text(&error)),
            }
        };
        let Some((config, is_joining)) = tls.config_for(&accepted.client_hello()) else {
            return Err("it speaks another protocol".to_owned());
        };
        let connection = accepted.into_connection(config).map_err(|(error, _)| text(&error))?;
        let mut stream = StreamOwned::new(connection, socket);
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).map_err(|it| text(&it))?;
        if is_joining {
            stream.write_all(b"join?").and_then(|()| stream.flush()).map_err(|it| text(&it))?;
            return Err("it joins".to_owned());
        }
        let certificate =
            stream.conn.peer_certificates().and_then(|it| it.first()).ok_or("no certificate")?;
        let (node, _) = node_of(&known, &super::digest(certificate)).ok_or("an unknown certificate")?;
        stream.write_all(SECRET).and_then(|()| stream.flush()).map_err(|it| text(&it))?;
        Ok(node)
    });
    (address, serving)
}

/// Connects and returns what the server sent. The connection ends with the first error.
fn ask(address: SocketAddr, config: ClientConfig, name: &str) -> (Vec<u8>, Option<String>) {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    let mut found = Vec::new();
    let done = stream.write_all(b"hello").and_then(|()| stream.read_to_end(&mut found));
    (found, done.err().map(|it| it.to_string()))
}

/// Returns what a client gets of the first node, and what the node made of the client.
fn exchange(node: &FirstNode, config: ClientConfig, name: &str) -> (Vec<u8>, Result<NodeId, String>) {
    let (address, serving) = serve(&node.identity(), node.certificates());
    let (found, _) = ask(address, config, name);
    (found, serving.join().unwrap())
}

#[test]
fn nodes_talk_until_one_is_revoked() {
    let first = FirstNode::new();
    let token = create_token(&first.store, NodeRole::Full, NOW).unwrap();
    let (secrets, answer) = first.join(&token, NOW);
    let answer = answer.unwrap();
    assert_eq!((answer.node, answer.role), (NodeId(2), NodeRole::Full));
    assert_eq!(answer.keys(&secrets.sealing).unwrap(), first.keys);
    let [certificate, authority] = answer.certificates();
    assert_eq!(super::digest(&authority), token.authority);
    let identity = first.identity_of(&secrets, certificate.clone());
    let (found, node) = exchange(&first, client_config(&identity).unwrap(), &node_name(NodeId(1)));
    assert_eq!((&*found, node), (SECRET, Ok(NodeId(2))));
    // It notices when it reaches another node than it wants.
    let (found, _) = exchange(&first, client_config(&identity).unwrap(), &node_name(NodeId(2)));
    assert_eq!(found, b"");

    revoke(&first.store, NodeId(2), NOW).unwrap();
    let (found, refused) = exchange(&first, client_config(&identity).unwrap(), &node_name(NodeId(1)));
    assert_eq!(found, b"");
    assert!(refused.as_ref().is_err_and(|it| it.contains("Revoked")), "{refused:?}");
    // Nor does a node connect to a revoked one.
    let revoked = NodeIdentity { trusted: first.identity().trusted, ..identity };
    let (address, serving) = serve(&revoked, first.certificates());
    let (found, error) = ask(address, client_config(&first.identity()).unwrap(), &node_name(NodeId(2)));
    assert!(found.is_empty() && error.as_ref().is_some_and(|it| it.contains("Revoked")), "{error:?}");
    assert!(serving.join().unwrap().is_err());
    // Nor an edge node, which has the list of valid certificates instead of a signed list of revoked ones.
    let valid = first.certificates().into_iter().filter(|it| it.revoked_at.is_none());
    let listed = TrustedNodes::Listed(Arc::new(valid.map(|it| it.fingerprint).collect()));
    let edge = NodeIdentity { trusted: listed, ..first.identity() };
    let (address, serving) = serve(&revoked, first.certificates());
    let (found, error) = ask(address, client_config(&edge).unwrap(), &node_name(NodeId(2)));
    assert!(found.is_empty() && error.as_ref().is_some_and(|it| it.contains("Revoked")), "{error:?}");
    assert!(serving.join().unwrap().is_err());
    let (found, _) = exchange(&first, client_config(&edge).unwrap(), &node_name(NodeId(1)));
    assert_eq!(found, SECRET);
    assert!(matches!(revoke(&first.store, NodeId(9), NOW), Err(NodeError::UnknownNode(NodeId(9)))));
}

#[test]
fn nothing_is_readable_without_a_certificate_of_the_cluster() {
    let first = FirstNode::new();
    let name = node_name(NodeId(1));
    // No certificate at all.
    let mut without = join_client_config(super::digest(first.identity().certificates[1].as_ref())).unwrap();
    without.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
    let (found, refused) = exchange(&first, without.clone(), &name);
    assert!(found.is_empty() && refused.is_err_and(|it| it.contains("no certificates")));
    // No protocol, another one, or both.
    for protocols in
        [vec![], vec![b"http/1.1".to_vec()], vec![JOIN_PROTOCOL.to_vec(), NODE_PROTOCOL.to_vec()]]
    {
        without.alpn_protocols = protocols;
        let (found, refused) = exchange(&first, without.clone(), &name);
        assert_eq!((found, refused), (Vec::new(), Err("it speaks another protocol".to_owned())));
    }
    // A certificate of another cluster.
    let other = FirstNode::new();
    let foreign = NodeIdentity {
        certificates: [other.certificate.clone(), first.identity().certificates[1].clone()],
        key: other.secrets.private_key(),
        trusted: first.identity().trusted,
    };
    let (found, refused) = exchange(&first, client_config(&foreign).unwrap(), &name);
    assert!(found.is_empty() && refused.is_err());
    // One that the authority signed and the cluster does not list, as after a stolen back-up.
    let secrets = NodeSecrets::new().unwrap();
    let authority = read_authority(&first.store).unwrap();
    let unlisted = authority.issue(NodeId(1), secrets.public_key(), [0x41; 16]).unwrap();
    let identity = first.identity_of(&secrets, unlisted);
    let (found, refused) = exchange(&first, client_config(&identity).unwrap(), &name);
    assert_eq!((found, refused), (Vec::new(), Err("an unknown certificate".to_owned())));
}

#[test]
fn a_joining_machine_trusts_only_the_authority_of_its_token() {
    let (first, other) = (FirstNode::new(), FirstNode::new());
    let token = create_token(&first.store, NodeRole::Full, NOW).unwrap();
    let (found, joined) = exchange(&first, join_client_config(token.authority).unwrap(), JOIN_NAME);
    assert_eq!((&*found, joined), (&b"join?"[..], Err("it joins".to_owned())));
    // Somebody in between with another cluster hears nothing of the token.
    let (found, refused) = exchange(&other, join_client_config(token.authority).unwrap(), JOIN_NAME);
    assert!(found.is_empty() && refused.is_err_and(|it| it.contains("UnknownCA")));
    // Also if it sends the right authority with a certificate of its own.
    let mut impostor = other.identity();
    impostor.certificates[1] = first.identity().certificates[1].clone();
    impostor.trusted = first.identity().trusted;
    let (address, serving) = serve(&impostor, Vec::new());
    let (found, error) = ask(address, join_client_config(token.authority).unwrap(), JOIN_NAME);
    assert!(found.is_empty() && error.is_some());
    assert!(serving.join().unwrap().is_err());
}

#[test]
fn a_token_admits_one_machine_within_an_hour() {
    let first = FirstNode::new();
    let is_refused = |answer: Result<JoinAnswer, NodeError>, why: TokenRefusal| {
        assert!(matches!(answer, Err(NodeError::Refused(it)) if it == why), "{answer:?}");
    };
    let token = create_token(&first.store, NodeRole::Edge, NOW).unwrap();
    let wrong = JoinToken { secret: [0; 16], ..token.clone() };
    is_refused(first.join(&wrong, NOW).1, TokenRefusal::Unknown);
    is_refused(first.join(&JoinToken { ticket: 99, ..token.clone() }, NOW).1, TokenRefusal::Unknown);
    is_refused(first.join(&token, NOW + TOKEN_MS).1, TokenRefusal::Expired);
    let (secrets, answer) = first.join(&token, NOW + TOKEN_MS - 1);
    let answer = answer.unwrap();
    assert_eq!((answer.node, answer.role), (NodeId(2), NodeRole::Edge));
    // An edge node gets no key of provider records.
    assert_eq!(answer.keys(&secrets.sealing).unwrap(), first.keys.for_edge());
    is_refused(first.join(&token, NOW + 1).1, TokenRefusal::Used);
    assert_eq!(first.certificates().len(), 2);
    // The next token removes it.
    create_token(&first.store, NodeRole::Full, NOW + TOKEN_MS).unwrap();
    is_refused(first.join(&token, NOW + TOKEN_MS).1, TokenRefusal::Unknown);
    // Of two machines that try at once, one is admitted.
    let token = create_token(&first.store, NodeRole::Full, NOW).unwrap();
    let admitted = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..4).map(|_| scope.spawn(|| first.join(&token, NOW).1.is_ok())).collect();
        tries.into_iter().filter_map(|it| it.join().ok()).filter(|it| *it).count()
    });
    assert_eq!(admitted, 1);
}

#[test]
fn a_request_is_parsed_strictly_and_prints_without_its_secret() {
    let first = FirstNode::new();
    let token = create_token(&first.store, NodeRole::Full, NOW).unwrap();
    let request = JoinRequest::new(&token, &NodeSecrets::new().unwrap());
    let text = serde_json::to_vec(&request).unwrap();
    assert!(text.len() < REQUEST_BYTES_MAX / 2);
    assert!(admit(&first.store, &first.keys, &JoinRequest::parse(&text).unwrap(), NOW).is_ok());
    assert!(format!("{request:?}").len() < 40, "{request:?}");
    for wrong in
        [&b""[..], b"{}", b"[]", &text[..text.len() - 1], &[&text[..], &[b' '; REQUEST_BYTES_MAX]].concat()]
    {
        assert!(matches!(JoinRequest::parse(wrong), Err(NodeError::InvalidRequest)));
    }
}

#[test]
fn rotated_keys_reach_every_node_but_a_revoked_one() {
    let first = FirstNode::new();
    let join = |role| {
        let token = create_token(&first.store, role, NOW).unwrap();
        let (secrets, answer) = first.join(&token, NOW);
        (secrets, answer.unwrap().node)
    };
    let (full, edge, gone) = (join(NodeRole::Full), join(NodeRole::Edge), join(NodeRole::Full));
    revoke(&first.store, gone.1, NOW).unwrap();
    let rotated = rotate_keys(&first.store, &first.keys).unwrap();
    assert_ne!(rotated, first.keys);
    let keys_of =
        |(secrets, node): &(NodeSecrets, NodeId)| stored_keys(&first.store, *node, &secrets.sealing);
    assert_eq!(keys_of(&full).unwrap(), Some(rotated.clone()));
    assert_eq!(keys_of(&edge).unwrap(), Some(rotated.for_edge()));
    assert_eq!(keys_of(&gone).unwrap(), None);
    assert!(stored_keys(&first.store, full.1, &gone.0.sealing).is_err(), "sealed for another node");
    assert!(rotate_keys(&first.store, &first.keys.for_edge()).is_err());
}

#[test]
fn a_store_becomes_the_first_node_and_keeps_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = (folder.path().join("node"), Store::temporary(storage::records::schema()).unwrap());
    storage::seed(&store).unwrap();
    let before = store.collection::<domain::setting::CoreSetting>().all().unwrap();
    assert!(NodeFile::read(&path).unwrap().is_none());
    let log = Arc::new(VecLog::default());
    let begin = |store: &Store| begin_cluster(store, &path, log.clone(), NOW);
    let file = begin(&store).unwrap();
    // The authority is in the log, so that a second cluster is refused there.
    assert_eq!(log.entries.lock().len(), 1);
    let second = Store::temporary(storage::records::schema()).unwrap();
    let other = begin_cluster(&second, &folder.path().join("other"), log.clone(), NOW);
    assert!(matches!(other, Err(NodeError::OtherCluster(1))), "{other:?}");
    assert!(second.log_status().borrow().is_none() && second.writes_shared());
    assert_eq!((file.node, file.role), (NodeId(1), NodeRole::Full));
    assert_eq!(store.collection::<domain::setting::CoreSetting>().all().unwrap(), before);
    assert!(matches!(begin(&store), Err(NodeError::IsCluster)));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    // Another machine joins, and both talk with what is in their files.
    let read = NodeFile::read(&path).unwrap().unwrap();
    assert_eq!((read.data_keys.clone(), read.sealing.public()), (file.data_keys, file.sealing.public()));
    let token = create_token(&store, NodeRole::Edge, NOW).unwrap();
    let secrets = NodeSecrets::new().unwrap();
    let answer = admit(&store, &read.data_keys, &JoinRequest::new(&token, &secrets), NOW).unwrap();
    let joined = NodeFile::from_answer(&secrets, &answer).unwrap();
    joined.write(&path).unwrap();
    let joined = NodeFile::read(&path).unwrap().unwrap();
    assert_eq!((joined.node, joined.data_keys.clone()), (NodeId(2), read.data_keys.for_edge()));
    let revoked = read_authority(&store).unwrap().revocation_list(&[]).unwrap();
    let [server, client] = [&read, &joined].map(|it| NodeIdentity {
        certificates: it.certificates(),
        key: it.private_key(),
        trusted: TrustedNodes::Except(revoked.clone()),
    });
    let (address, serving) = serve(&server, store.collection::<NodeCertificate>().all().unwrap());
    let (found, _) = ask(address, client_config(&client).unwrap(), &node_name(NodeId(1)));
    assert_eq!((&*found, serving.join().unwrap()), (SECRET, Ok(NodeId(2))));
    assert!(!format!("{joined:?}").contains("key"), "{joined:?}");

    // After a crash before the file was written, it begins a new log with the same authority.
    std::fs::remove_file(&path).unwrap();
    store.stop_writing().unwrap();
    let again = begin(&store).unwrap();
    assert_eq!((again.node, &again.certificates()[1]), (NodeId(3), &joined.certificates()[1]));
    for wrong in ["", "{}", "[1]"] {
        std::fs::write(&path, wrong).unwrap();
        assert!(matches!(NodeFile::read(&path), Err(NodeError::File { .. })), "{wrong}");
    }
}

#[test]
fn an_authority_is_read_back_and_prints_without_its_key() {
    let first = FirstNode::new();
    let (authority, stored) = Authority::new().unwrap();
    assert_eq!(Authority::from_stored(&stored).unwrap().certificate(), authority.certificate());
    assert_eq!(format!("{stored:?} {:?}", first.secrets), "ClusterAuthority(…) NodeSecrets(…)");
    let alone = Store::temporary(storage::records::schema()).unwrap();
    assert!(matches!(create_token(&alone, NodeRole::Full, NOW), Err(NodeError::NoCluster)));
}
