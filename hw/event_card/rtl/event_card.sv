// The event card: one store is one event. See ../README.md.
module event_card #(
    parameter int          ID_BITS = 3,
    parameter int          EVENT_BITS = 16,
    parameter int          DEPTH_LOG2 = 9,
    parameter int          GAPS_LOG2 = 3,
    parameter int          COUNT_BITS = 64,
    parameter bit          ASYNC_TICK = 1'b0,
    parameter logic [31:0] CLOCK_HZ = 32'd0,
    localparam int         ADDR_BITS = EVENT_BITS + 5
) (
    input  logic                 clk,
    input  logic                 rst_n,
    input  logic                 tick_clk,

    input  logic                 s_axi_awvalid,
    output logic                 s_axi_awready,
    input  logic [ADDR_BITS-1:0] s_axi_awaddr,
    input  logic [ID_BITS-1:0]   s_axi_awid,
    input  logic [2:0]           s_axi_awprot,
    input  logic                 s_axi_wvalid,
    output logic                 s_axi_wready,
    input  logic [31:0]          s_axi_wdata,
    input  logic [3:0]           s_axi_wstrb,
    output logic                 s_axi_bvalid,
    input  logic                 s_axi_bready,
    output logic [ID_BITS-1:0]   s_axi_bid,
    output logic [1:0]           s_axi_bresp,
    input  logic                 s_axi_arvalid,
    output logic                 s_axi_arready,
    input  logic [ADDR_BITS-1:0] s_axi_araddr,
    input  logic [ID_BITS-1:0]   s_axi_arid,
    input  logic [2:0]           s_axi_arprot,
    output logic                 s_axi_rvalid,
    input  logic                 s_axi_rready,
    output logic [ID_BITS-1:0]   s_axi_rid,
    output logic [31:0]          s_axi_rdata,
    output logic [1:0]           s_axi_rresp,

    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic [127:0]         m_axis_tdata
);
  localparam int EVENT_WORD = 64 + 32 + EVENT_BITS + 3 + ID_BITS + 1;

  // The bus.
  logic store_valid, store_ready, store_is_privileged, store_is_error;
  logic [ADDR_BITS-1:0] store_address, read_address;
  logic [31:0] store_data, register_data;
  logic [3:0] store_strobes;
  logic [ID_BITS-1:0] store_master, read_master;
  logic [63:0] store_time, now;
  logic read_valid, read_is_error, register_read_is_error, register_write_is_error;

  // What the registers say.
  logic is_enabled, start, set_tick, tick_is_busy, preset, clear_high_water;
  logic [1:0] policy;
  logic [31:0] mask, stall_limit, tick_cycles;
  logic [63:0] preset_time;
  logic [DEPTH_LOG2:0] level, high_water;
  logic [COUNT_BITS-1:0] written, lost;

  // A store, decoded.
  logic is_event, is_register;
  logic [EVENT_BITS-1:0] store_event;
  logic [2:0] store_kind;
  logic [31:0] store_payload;
  logic push_ready;

  // On the way out.
  logic item_valid, item_take, item_is_event, item_has_gap, event_left;
  logic [EVENT_WORD-1:0] item_data;
  logic [COUNT_BITS-1:0] item_gap;
  logic [15:0] item_gap_masters;
  logic [63:0] item_time;
  logic [31:0] item_payload;
  logic [EVENT_BITS-1:0] item_event;
  logic [2:0] item_kind;
  logic [ID_BITS-1:0] item_master;
  logic item_is_privileged;

  // Registers are read whole, by everybody.
  wire unused = ^{s_axi_arprot, read_address[1:0]};

  // Registers lie in the first 256 bytes of slot 0; the rest of it is empty.
  wire store_is_beyond = store_address[ADDR_BITS-4:8] != '0;
  wire read_is_beyond = read_address[ADDR_BITS-1:8] != '0;

  axi_lite_slave #(
      .ID_BITS(ID_BITS),
      .ADDR_BITS(ADDR_BITS)
  ) u_bus (
      .clk(clk),
      .rst_n(rst_n),
      .now(now),
      .s_axi_awvalid(s_axi_awvalid),
      .s_axi_awready(s_axi_awready),
      .s_axi_awaddr(s_axi_awaddr),
      .s_axi_awid(s_axi_awid),
      .s_axi_awprot(s_axi_awprot),
      .s_axi_wvalid(s_axi_wvalid),
      .s_axi_wready(s_axi_wready),
      .s_axi_wdata(s_axi_wdata),
      .s_axi_wstrb(s_axi_wstrb),
      .s_axi_bvalid(s_axi_bvalid),
      .s_axi_bready(s_axi_bready),
      .s_axi_bid(s_axi_bid),
      .s_axi_bresp(s_axi_bresp),
      .s_axi_arvalid(s_axi_arvalid),
      .s_axi_arready(s_axi_arready),
      .s_axi_araddr(s_axi_araddr),
      .s_axi_arid(s_axi_arid),
      .s_axi_rvalid(s_axi_rvalid),
      .s_axi_rready(s_axi_rready),
      .s_axi_rid(s_axi_rid),
      .s_axi_rdata(s_axi_rdata),
      .s_axi_rresp(s_axi_rresp),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_address(store_address),
      .store_data(store_data),
      .store_strobes(store_strobes),
      .store_master(store_master),
      .store_is_privileged(store_is_privileged),
      .store_time(store_time),
      .store_is_error(store_is_error),
      .read_valid(read_valid),
      .read_address(read_address),
      .read_master(read_master),
      .read_data(read_is_beyond ? 32'd0 : register_data),
      .read_is_error(read_is_error)
  );

  time_base #(
      .ASYNC_TICK(ASYNC_TICK)
  ) u_time (
      .clk(clk),
      .rst_n(rst_n),
      .tick_clk(tick_clk),
      .set_tick(set_tick),
      .tick_cycles(tick_cycles),
      .preset(preset),
      .preset_time(preset_time),
      .tick_is_busy(tick_is_busy),
      .now(now)
  );

  store_decoder #(
      .EVENT_BITS(EVENT_BITS),
      .ADDR_BITS(ADDR_BITS)
  ) u_decoder (
      .address(store_address),
      .data(store_data),
      .strobes(store_strobes),
      .is_enabled(is_enabled),
      .mask(mask),
      .is_event(is_event),
      .is_register(is_register),
      .event_number(store_event),
      .kind(store_kind),
      .payload(store_payload)
  );

  wire register_write = store_valid && is_register && !store_is_beyond && store_strobes == 4'hf;

  assign store_ready = !is_event || push_ready;
  assign store_is_error = is_register && (store_is_beyond || store_strobes != 4'hf ||
                                          register_write_is_error);
  assign read_is_error = read_is_beyond || register_read_is_error;

  card_registers #(
      .EVENT_BITS(EVENT_BITS),
      .ID_BITS(ID_BITS),
      .DEPTH_LOG2(DEPTH_LOG2),
      .GAPS_LOG2(GAPS_LOG2),
      .COUNT_BITS(COUNT_BITS),
      .ASYNC_TICK(ASYNC_TICK),
      .CLOCK_HZ(CLOCK_HZ)
  ) u_registers (
      .clk(clk),
      .rst_n(rst_n),
      .write(register_write),
      .write_register({store_address[7:2], 2'b00}),
      .write_data(store_data),
      .write_is_error(register_write_is_error),
      .read(read_valid && !read_is_beyond),
      .read_register({read_address[7:2], 2'b00}),
      .read_master(read_master),
      .read_data(register_data),
      .read_is_error(register_read_is_error),
      .is_enabled(is_enabled),
      .start(start),
      .policy(policy),
      .mask(mask),
      .stall_limit(stall_limit),
      .tick_cycles(tick_cycles),
      .set_tick(set_tick),
      .preset(preset),
      .preset_time(preset_time),
      .clear_high_water(clear_high_water),
      .tick_is_busy(tick_is_busy),
      .now(now),
      .level(level),
      .high_water(high_water),
      .written(written),
      .lost(lost)
  );

  event_fifo #(
      .DEPTH_LOG2(DEPTH_LOG2),
      .GAPS_LOG2(GAPS_LOG2),
      .BITS(EVENT_WORD),
      .ID_BITS(ID_BITS),
      .COUNT_BITS(COUNT_BITS)
  ) u_fifo (
      .clk(clk),
      .rst_n(rst_n),
      .policy(policy),
      .stall_limit(stall_limit),
      .push_valid(store_valid && is_event),
      .push_ready(push_ready),
      .push_data({
        store_time, store_payload, store_event, store_kind, store_master, store_is_privileged
      }),
      .push_master(store_master),
      .item_valid(item_valid),
      .item_take(item_take),
      .item_is_event(item_is_event),
      .item_data(item_data),
      .item_has_gap(item_has_gap),
      .item_gap(item_gap),
      .item_gap_masters(item_gap_masters),
      .event_left(event_left),
      .clear_high_water(clear_high_water),
      .level(level),
      .high_water(high_water),
      .written(written),
      .lost(lost)
  );

  assign {item_time, item_payload, item_event, item_kind, item_master, item_is_privileged} =
      item_data;

  record_stream #(
      .EVENT_BITS(EVENT_BITS),
      .ID_BITS(ID_BITS),
      .COUNT_BITS(COUNT_BITS),
      .CLOCK_HZ(CLOCK_HZ)
  ) u_stream (
      .clk(clk),
      .rst_n(rst_n),
      .start(start),
      .tick_cycles(tick_cycles),
      .item_valid(item_valid),
      .item_take(item_take),
      .item_is_event(item_is_event),
      .item_time(item_time),
      .item_payload(item_payload),
      .item_event(item_event),
      .item_kind(item_kind),
      .item_master(item_master),
      .item_is_privileged(item_is_privileged),
      .item_has_gap(item_has_gap),
      .item_gap(item_gap),
      .item_gap_masters(item_gap_masters),
      .event_left(event_left),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tdata(m_axis_tdata)
  );
endmodule
