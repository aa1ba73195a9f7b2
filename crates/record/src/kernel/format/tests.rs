use super::*;

pub(crate) const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

#[test]
fn a_page_and_an_event() {
    let page = PageLayout::parse(PAGE).unwrap();
    assert_eq!((page.data, page.bytes), (16, 4096));
    let format = Format::parse(
            "name: x\nID: 372\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t prev_pid;\toffset:2;\tsize:4;\tsigned:1;\n\
             \tfield:__data_loc char[] name;\toffset:6;\tsize:4;\tsigned:0;\n\
             \tfield:u32 state;\toffset:2;\tsize:4;\tsigned:0;\n\nprint fmt: \"a\", REC->b\n",
        )
        .unwrap();
    assert_eq!(format.id, 372);
    let bytes = [1, 2, 0xfe, 0xff, 0xff, 0xff, 7, 8];
    assert_eq!(format.field("common_type").unwrap().get(&bytes), 0x201);
    assert_eq!(format.field("prev_pid").unwrap().get(&bytes), -2);
    assert_eq!(format.field("state").unwrap().get(&bytes), 0xffff_fffe);
    assert_eq!(format.field("prev_comm").unwrap().get(&bytes), 0);
    assert!(format.field("name").is_some() && format.field("nothing").is_none());
    assert_eq!(Format::parse("name: x\n"), None);
    assert_eq!(PageLayout::parse("field: u64 timestamp;\n"), None);
}
