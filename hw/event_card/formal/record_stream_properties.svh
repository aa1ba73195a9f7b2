// Of the stream: a record that waits stays, and each item becomes its own records.

reg f_is_first = 1'b1;
reg f_waits, f_took_event, f_took_gap, f_has_item, f_had_gap_told;
reg [127:0] f_data;
reg [63:0] f_time, f_gap;
reg [31:0] f_payload;
always @(posedge clk) begin
  f_is_first <= 1'b0;
  f_waits <= rst_n && m_axis_tvalid && !m_axis_tready;
  f_data <= m_axis_tdata;
  f_took_event <= rst_n && item_take && item_is_event;
  f_took_gap <= rst_n && item_take && !item_is_event;
  f_time <= item_time;
  f_payload <= item_payload;
  f_gap <= 64'(item_gap);
end
`ifdef FORMAL_ALONE
// What the queue promises: an item stays until it is taken, and says something.
reg f_item_waits;
reg [63:0] f_item_gap;
reg f_item_has_gap, f_item_is_event;
always @(posedge clk) begin
  f_item_waits <= rst_n && item_valid && !item_take;
  f_item_gap <= 64'(item_gap);
  f_item_has_gap <= item_has_gap;
  f_item_is_event <= item_is_event;
end
always @(*) begin
  if (f_is_first) assume (!rst_n);
  if (f_item_waits) assume (item_valid && 64'(item_gap) == f_item_gap && item_has_gap == f_item_has_gap &&
      item_is_event == f_item_is_event);
  if (item_valid) assume (item_is_event || item_has_gap);
end
`endif

// The value of gaps told so far, and of gaps that items brought.
reg [7:0] f_told, f_brought;
reg [3:0] f_events_out, f_events_in;
wire f_is_gap = m_axis_tdata[127-:16] == {2'd2, 3'd7, 11'd2047};
always @(posedge clk)
  if (!rst_n) begin
    f_told <= 8'd0;
    f_brought <= 8'd0;
    f_events_in <= 4'd0;
    f_events_out <= 4'd0;
  end else begin
    if (m_axis_tvalid && m_axis_tready && f_is_gap && !is_event) f_told <= f_told + m_axis_tdata[7:0];
    if (item_take && item_has_gap) f_brought <= f_brought + 8'(item_gap);
    if (item_take && item_is_event) f_events_in <= f_events_in + 4'd1;
    if (event_left) f_events_out <= f_events_out + 4'd1;
  end

always @(posedge clk)
  if (rst_n && !f_is_first) begin
    stream_record_waits: assert (!f_waits || (m_axis_tvalid && m_axis_tdata == f_data));
    stream_event_is_the_item:
    assert (!f_took_event || (m_axis_tvalid && is_event && m_axis_tdata[63:0] == f_time &&
            m_axis_tdata[95:64] == f_payload && m_axis_tdata[125:123] != 3'd7));
    stream_gap_is_the_item:
    assert (!f_took_gap || (m_axis_tvalid && !is_event && f_is_gap && m_axis_tdata[63:0] == f_gap));
    // Every event that was taken leaves once; every gap is told once, before its event.
    stream_events_leave_once: assert (f_events_in == f_events_out + (m_axis_tvalid && is_event));
    stream_tells_every_gap:
    assert (f_told + (m_axis_tvalid && f_is_gap && !is_event ? m_axis_tdata[7:0] : 8'd0) ==
            f_brought + (gap_is_told ? 8'(item_gap) : 8'd0));
    stream_gap_is_told_of_an_item: assert (!gap_is_told || (item_valid && item_has_gap && item_is_event));
    stream_has_an_event_only_if_valid: assert (!is_event || m_axis_tvalid);
    stream_event_is_no_gap: assert (!(m_axis_tvalid && is_event) || m_axis_tdata[125:123] != 3'd7);
  end
