// Items of the queue as 16-byte records on an AXI-Stream: the card's own record
// first, a gap before the event that follows it.
module record_stream #(
    parameter int          EVENT_BITS = 16,
    parameter int          ID_BITS = 3,
    parameter int          COUNT_BITS = 64,
    parameter logic [31:0] CLOCK_HZ = 32'd0
) (
    input  logic                  clk,
    input  logic                  rst_n,
    input  logic                  start,
    input  logic [31:0]           tick_cycles,
    input  logic                  item_valid,
    output logic                  item_take,
    input  logic                  item_is_event,
    input  logic [63:0]           item_time,
    input  logic [31:0]           item_payload,
    input  logic [EVENT_BITS-1:0] item_event,
    input  logic [2:0]            item_kind,
    input  logic [ID_BITS-1:0]    item_master,
    input  logic                  item_is_privileged,
    input  logic                  item_has_gap,
    input  logic [COUNT_BITS-1:0] item_gap,
    input  logic [15:0]           item_gap_masters,
    output logic                  event_left,
    output logic                  m_axis_tvalid,
    input  logic                  m_axis_tready,
    output logic [127:0]          m_axis_tdata
);
  // Which master has event number and time in it, and so on: docs/format.md.
  localparam logic [11:0] MASTERS = 12'd1 << ID_BITS;

  logic start_is_due, gap_is_told, is_event;

  wire can_load = !m_axis_tvalid || m_axis_tready;
  wire tells_gap = item_has_gap && !gap_is_told;
  wire load = can_load && (start_is_due || item_valid);
  wire loads_event = !start_is_due && !tells_gap && item_is_event;
  wire [1:0] flag = item_is_privileged ? event_card_pkg::FLAG_SUPERVISOR
                                       : event_card_pkg::FLAG_USER;

  assign item_take = can_load && !start_is_due && item_valid && !(tells_gap && item_is_event);
  assign event_left = m_axis_tvalid && m_axis_tready && is_event;

  logic [127:0] record;
  always_comb begin
    if (start_is_due) begin
      record[63:0]    = {tick_cycles, CLOCK_HZ};
      record[95:64]   = event_card_pkg::CONTINUATION_CARD;
      record[111:96]  = event_card_pkg::STREAM_VERSION;
      record[127:112] = {
        event_card_pkg::FLAG_USER, event_card_pkg::KIND_CONTINUATION, MASTERS[10:0]
      };
    end else if (tells_gap) begin
      record[63:0]    = 64'(item_gap);
      record[95:64]   = event_card_pkg::CONTINUATION_GAP;
      record[111:96]  = item_gap_masters;
      record[127:112] = {
        event_card_pkg::FLAG_USER,
        event_card_pkg::KIND_CONTINUATION,
        event_card_pkg::MASTER_UNKNOWN
      };
    end else begin
      record[63:0]    = item_time;
      record[95:64]   = item_payload;
      record[111:96]  = 16'(item_event);
      record[127:112] = {flag, item_kind, 11'(item_master)};
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      start_is_due  <= 1'b0;
      gap_is_told   <= 1'b0;
      is_event      <= 1'b0;
      m_axis_tvalid <= 1'b0;
      m_axis_tdata  <= 128'd0;
    end else begin
      if (start) start_is_due <= 1'b1;
      else if (can_load) start_is_due <= 1'b0;
      if (load) begin
        m_axis_tvalid <= 1'b1;
        m_axis_tdata  <= record;
        is_event      <= loads_event;
        if (!start_is_due) gap_is_told <= tells_gap && item_is_event;
      end else if (m_axis_tready) begin
        m_axis_tvalid <= 1'b0;
        is_event      <= 1'b0;
      end
    end
  end
  wire unused = MASTERS[11];
`ifdef PROOFS
`include "record_stream_properties.svh"
`endif
endmodule
