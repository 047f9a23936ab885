//! Names of services (SDT).

use super::{ServiceId, decode_text, descriptors, length_prefixed, short_prefixed};

/// Reads the body of a section: the services that have a name.
pub(super) fn read(stream: u16, body: &[u8]) -> Option<Vec<(ServiceId, String)>> {
    const SERVICE: u8 = 0x48;
    let (network, rest) = body.split_first_chunk::<2>()?;
    let network = u16::from_be_bytes(*network);
    let mut rest = rest.get(1..)?;
    let mut names = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<3>() {
        let Some((loop_bytes, after)) = length_prefixed(after) else { break };
        rest = after;
        let service = ServiceId { network, stream, service: u16::from_be_bytes([head[0], head[1]]) };
        let descriptor = descriptors(loop_bytes).find(|(tag, _)| *tag == SERVICE);
        let name = descriptor.and_then(|(_, data)| name(data)).filter(|it| !it.is_empty());
        names.extend(name.map(|it| (service, it)));
    }
    Some(names)
}

/// Reads the name of a service descriptor, which follows the type of the service and the name of the provider.
fn name(data: &[u8]) -> Option<String> {
    let (_, rest) = short_prefixed(data.get(1..)?)?;
    let (name, _) = short_prefixed(rest)?;
    Some(decode_text(name).trim().to_owned())
}
