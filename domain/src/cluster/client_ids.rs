//! The ids of clients of a cluster name the node that serves them.
//!
//! An id is a counter in the lower 32 bits, and above it the lower 21 bits of the id of the node: less than 2⁵³, so that every
//! program that reads JSON reads it exactly. Without a cluster, ids are counted from 1.

use super::record::NodeId;

const COUNTER_BITS: u32 = 32;
const NODE_MASK: u32 = (1 << 21) - 1;

/// Returns a number that is lower than the ids of all clients of a node.
pub fn first_client(node: NodeId) -> u64 {
    u64::from(node.0 & NODE_MASK) << COUNTER_BITS
}

/// Returns whether the id of a client can be one of this node. Rarely, two nodes have the same lower bits.
pub fn is_client_of(client: u64, node: NodeId) -> bool {
    client >> COUNTER_BITS == first_client(node) >> COUNTER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_client_names_its_node_and_is_exact_in_json() {
        for node in [NodeId(0), NodeId(1), NodeId(NODE_MASK), NodeId(u32::MAX)] {
            let first = first_client(node);
            for client in [first + 1, first + u64::from(u32::MAX)] {
                assert!(is_client_of(client, node) && client < 1 << 53, "{client}");
                assert!(!is_client_of(client, NodeId(node.0 ^ 2)));
            }
        }
        assert!(!is_client_of(17, NodeId(5)));
    }
}
