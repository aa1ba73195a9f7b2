//! Splits a Perfetto trace into its packets, the fields of the outermost message.

use std::io::{BufRead, Read};

use crate::import::wire::varint;

/// Longest packet, bytes.
const LONGEST: u64 = 1 << 26;

pub(super) enum Next {
    Packet,
    /// A field that is not a packet.
    Other,
    End,
    Cut,
    Bad(String),
}

/// Reads the next field of the outermost message.
pub(super) fn next_packet(
    reader: &mut impl BufRead,
    packet: &mut Vec<u8>,
) -> std::io::Result<Next> {
    let Some(key) = read_varint(reader)? else {
        return Ok(if reader.fill_buf()?.is_empty() {
            Next::End
        } else {
            Next::Cut
        });
    };
    packet.clear();
    if key >> 3 == 0 {
        return Ok(Next::Bad("field 0, which no message has".to_owned()));
    }
    if key & 7 != 2 {
        return Ok(match key & 7 {
            0 if read_varint(reader)?.is_some() => Next::Other,
            _ => Next::Bad(format!("field {} is no packet", key >> 3)),
        });
    }
    let Some(length) = read_varint(reader)? else {
        return Ok(Next::Cut);
    };
    if length > LONGEST {
        return Ok(Next::Bad(format!(
            "a packet of {length} bytes, more than 64 MiB"
        )));
    }
    (&mut *reader).take(length).read_to_end(packet)?;
    Ok(match (packet.len() as u64 == length, key >> 3) {
        (false, _) => Next::Cut,
        (true, 1) => Next::Packet,
        (true, _) => Next::Other,
    })
}

fn read_varint(reader: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut bytes = [0; 10];
    for at in 0..bytes.len() {
        if reader.take(1).read(&mut bytes[at..=at])? == 0 {
            return Ok(None);
        }
        if bytes[at] & 0x80 == 0 {
            return Ok(varint(&mut &bytes[..=at]));
        }
    }
    Ok(None)
}
