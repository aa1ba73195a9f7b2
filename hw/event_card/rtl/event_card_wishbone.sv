// The event card on a Wishbone bus.
module event_card_wishbone #(
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
    input  logic                 wb_cyc,
    input  logic                 wb_stb,
    input  logic                 wb_we,
    input  logic [ADDR_BITS-1:0] wb_adr,
    input  logic [31:0]          wb_dat_w,
    input  logic [3:0]           wb_sel,
    input  logic [ID_BITS-1:0]   wb_master,
    input  logic                 wb_is_privileged,
    output logic                 wb_stall,
    output logic                 wb_ack,
    output logic                 wb_err,
    output logic [31:0]          wb_dat_r,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic [127:0]         m_axis_tdata
);
  logic awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic [ADDR_BITS-1:0] awaddr, araddr;
  logic [ID_BITS-1:0] awid, arid, bid, rid;
  logic [2:0] awprot, arprot;
  logic [31:0] wdata, rdata;
  logic [3:0] wstrb;
  logic [1:0] bresp, rresp;

  // Wishbone answers in order: who is answered is known without the ids.
  wire unused = ^{bid, rid};

  wishbone_adapter #(
      .ID_BITS(ID_BITS),
      .ADDR_BITS(ADDR_BITS)
  ) u_adapter (
      .clk(clk),
      .rst_n(rst_n),
      .wb_cyc(wb_cyc),
      .wb_stb(wb_stb),
      .wb_we(wb_we),
      .wb_adr(wb_adr),
      .wb_dat_w(wb_dat_w),
      .wb_sel(wb_sel),
      .wb_master(wb_master),
      .wb_is_privileged(wb_is_privileged),
      .wb_stall(wb_stall),
      .wb_ack(wb_ack),
      .wb_err(wb_err),
      .wb_dat_r(wb_dat_r),
      .m_axi_awvalid(awvalid),
      .m_axi_awready(awready),
      .m_axi_awaddr(awaddr),
      .m_axi_awid(awid),
      .m_axi_awprot(awprot),
      .m_axi_wvalid(wvalid),
      .m_axi_wready(wready),
      .m_axi_wdata(wdata),
      .m_axi_wstrb(wstrb),
      .m_axi_bvalid(bvalid),
      .m_axi_bready(bready),
      .m_axi_bresp(bresp),
      .m_axi_arvalid(arvalid),
      .m_axi_arready(arready),
      .m_axi_araddr(araddr),
      .m_axi_arid(arid),
      .m_axi_arprot(arprot),
      .m_axi_rvalid(rvalid),
      .m_axi_rready(rready),
      .m_axi_rdata(rdata),
      .m_axi_rresp(rresp)
  );

  event_card #(
      .ID_BITS(ID_BITS),
      .EVENT_BITS(EVENT_BITS),
      .DEPTH_LOG2(DEPTH_LOG2),
      .GAPS_LOG2(GAPS_LOG2),
      .COUNT_BITS(COUNT_BITS),
      .ASYNC_TICK(ASYNC_TICK),
      .CLOCK_HZ(CLOCK_HZ)
  ) u_card (
      .clk(clk),
      .rst_n(rst_n),
      .tick_clk(tick_clk),
      .s_axi_awvalid(awvalid),
      .s_axi_awready(awready),
      .s_axi_awaddr(awaddr),
      .s_axi_awid(awid),
      .s_axi_awprot(awprot),
      .s_axi_wvalid(wvalid),
      .s_axi_wready(wready),
      .s_axi_wdata(wdata),
      .s_axi_wstrb(wstrb),
      .s_axi_bvalid(bvalid),
      .s_axi_bready(bready),
      .s_axi_bid(bid),
      .s_axi_bresp(bresp),
      .s_axi_arvalid(arvalid),
      .s_axi_arready(arready),
      .s_axi_araddr(araddr),
      .s_axi_arid(arid),
      .s_axi_arprot(arprot),
      .s_axi_rvalid(rvalid),
      .s_axi_rready(rready),
      .s_axi_rid(rid),
      .s_axi_rdata(rdata),
      .s_axi_rresp(rresp),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tdata(m_axis_tdata)
  );
endmodule
